// Makes the page that `v3demu profile` writes of the page of `v3demu inspect`: everything in one file, and a place for a profile.
//
// usage: node export.mjs INDEX.HTML PAGE.CSS PAGE.JS OUTPUT
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";

const [index, css, js, output] = process.argv.slice(2);
const read = (path) => readFileSync(path, "utf8");

/// Text within an element must not look like the end of it, or like a comment.
function inlined(path) {
  const text = read(path);
  if (/<\/(script|style)|<!--/i.test(text)) throw new Error(`${path} cannot stand within an element`);
  return text;
}
function replaced(text, old, by) {
  if (text.split(old).length !== 2) throw new Error(`${index} has no one ${old}`);
  return text.replace(old, () => by);
}
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const style = inlined(css);
const script = inlined(js);
// Only this script runs, whatever stands in the profile, and the page reaches nobody.
const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src data:; base-uri 'none'; form-action 'none'`;
let page = read(index);
page = replaced(page, '<meta charset="utf-8">', `<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="${policy}">`);
page = replaced(page, "<title>v3demu inspect</title>", "<title>v3demu profile</title>");
page = replaced(page, '<link rel="stylesheet" href="page.css">', `<style>${style}</style>`);
page = replaced(page, "v3demu inspect needs JavaScript.", "v3demu profile needs JavaScript.");
page = replaced(page, '<script src="page.js"></script>', `<script type="application/json" id="profile">{{profile}}</script>\n<script>${script}</script>`);
writeFileSync(output, page);
