// The profile within the frame debugger, whose server makes it while it is asked.
import { useEffect, useState } from "preact/hooks";
import { ask } from "../api";
import type { Place } from "../address";
import { goToJob } from "../tree";
import type { Profile } from "./model";
import { ProfilePage } from "./page";

interface Props {
  place: Place;
  move: (change: Partial<Place>) => void;
}

/// As long as it is not done, how far it is.
type Answer = { done: number; of: number } | Profile;

export function ProfileView({ place, move }: Props) {
  const [answer, setAnswer] = useState<Answer>();
  const [error, setError] = useState("");
  useEffect(() => {
    const abort = new AbortController();
    setAnswer(undefined);
    setError("");
    const wait = async () => {
      for (;;) {
        const next = await ask<Answer>("profile", { other: place.other }, abort.signal);
        if (abort.signal.aborted) return;
        setAnswer(next);
        if (!("of" in next)) return;
      }
    };
    wait().catch((reason: Error) => abort.signal.aborted || setError(reason.message));
    return () => abort.abort();
  }, [place.other]);
  if (error) return <p class="bad">{error}</p>;
  if (!answer || "of" in answer) return <p class="faint" role="status">All jobs run on the timing model{answer ? `: ${answer.done} of ${answer.of}` : ""} ...</p>;
  return (
    <>
      {place.patch !== "" && <p class="faint">The profile is that of the capture, without the edits.</p>}
      <ProfilePage profile={answer} job={place.job} choose={(job) => move({ ...goToJob(job), view: "profile" })} open={(job, draw) => move({ ...goToJob(job), draw })} />
    </>
  );
}
