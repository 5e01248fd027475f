// What both drivers share: the run's description (argv), the tool that writes a file, and how a run ends.
import { writeFileSync } from "node:fs";

export const run = JSON.parse(process.argv[2]);
export const parameters = {
  type: "object",
  properties: { path: { type: "string" }, content: { type: "string" } },
  required: ["path", "content"],
  additionalProperties: false,
};
export const about = "Write a text to a file.";

export function write({ path, content }) {
  writeFileSync(path, content);
  return "written";
}

export async function finish(work) {
  try {
    console.log(await work());
  } catch (error) {
    console.log(`${error.name}: ${error.status ?? error.statusCode ?? ""} ${error.message}`);
    process.exitCode = 1;
  }
}
