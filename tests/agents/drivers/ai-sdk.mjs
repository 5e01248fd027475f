// An agent of a few lines on the AI SDK, through its three provider packages.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { about, finish, parameters, run, write } from "./files.mjs";

const place = { baseURL: run.v1, apiKey: run.token };
const model = {
  chat: () => createOpenAICompatible({ name: "reef", ...place })(run.model),
  messages: () => createAnthropic(place)(run.model),
  responses: () => createOpenAI(place).responses(run.model),
}[run.dialect]();
const write_file = tool({ description: about, inputSchema: jsonSchema(parameters), execute: write });
const providerOptions = run.dialect === "responses" ? { openai: { store: run.store } } : {};
const tools = { write_file };
const task = { model, prompt: run.task, tools, providerOptions, stopWhen: stepCountIs(5) };

await finish(async () => {
  if (!run.stream) return (await generateText(task)).text;
  let failed;
  const stream = streamText({ ...task, onError: ({ error }) => (failed ??= error) });
  await stream.consumeStream();
  if (failed) throw failed;
  return stream.text;
});
