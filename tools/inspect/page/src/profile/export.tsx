// The page that `v3demu profile` writes, with the profile in it.
import { format, parse, usePlace } from "../address";
import type { Profile } from "./model";
import { ProfilePage } from "./page";

/// Whether the address names a job; one that does not leads to the slowest.
const kNamesJob = /[#&]job=/;

export function ExportedProfile({ profile }: { profile: Profile }) {
  const [place, move] = usePlace();
  return (
    <>
      <header>
        <h1>v3demu profile</h1>
        <span class="faint board" title={profile.description}>{profile.board}: {profile.description}</span>
      </header>
      <main class="wide">
        <ProfilePage profile={profile} job={kNamesJob.test(location.hash) ? place.job : undefined}
          choose={(job) => (format({ ...parse(location.hash), job: job.number }) === location.hash ? undefined : move({ job: job.number }))} />
      </main>
    </>
  );
}
