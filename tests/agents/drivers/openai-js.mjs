// An agent of a few lines on the openai package: it asks, writes files as told, and prints the last text.
import OpenAI from "openai";
import { about, finish, parameters, run, write } from "./files.mjs";

const client = new OpenAI({ baseURL: run.v1, apiKey: run.token });

async function chat(messages) {
  const tools = [{ type: "function", function: { name: "write_file", description: about, parameters } }];
  const body = { model: run.model, messages, tools };
  const whole = run.stream
    ? await client.chat.completions.stream(body).finalChatCompletion()
    : await client.chat.completions.create(body);
  const said = whole.choices[0].message;
  if (!said.tool_calls?.length) return said.content;
  const results = said.tool_calls.map((call) => {
    const content = write(JSON.parse(call.function.arguments));
    return { role: "tool", tool_call_id: call.id, content };
  });
  return chat([...messages, said, ...results]);
}

async function responses(input) {
  const tools = [{ type: "function", name: "write_file", description: about, parameters, strict: true }];
  const body = { model: run.model, input, tools };
  const whole = run.stream
    ? await client.responses.stream(body).finalResponse()
    : await client.responses.create(body);
  if (whole.error) throw new Error(whole.error.message); // a stream that failed is handed over as it is
  const calls = whole.output.filter((item) => item.type === "function_call");
  if (!calls.length) return whole.output_text;
  const results = calls.map((call) => {
    const output = write(JSON.parse(call.arguments));
    return { type: "function_call_output", call_id: call.call_id, output };
  });
  return responses([...input, ...whole.output, ...results]);
}

const ask = { chat, responses }[run.dialect];
await finish(() => ask([{ role: "user", content: run.task }]));
