// Libraries for JavaScript, each with a program that prints one reply.
import type { ClientProgram } from "../clients.ts";

const TEST = "test/clients/programs.test.ts";

export const NODE_PROGRAMS: readonly ClientProgram[] = [
  {
    name: "OpenAI SDK for JavaScript",
    install: "npm install openai",
    version: "7.55.0",
    test: TEST,
    blocks: [
      {
        language: "js",
        text: `import OpenAI from "openai";

const client = new OpenAI({
  baseURL: "http://127.0.0.1:8080/v1",
  apiKey: process.env.GATEWAY_KEY,
});
const reply = await client.chat.completions.create({
  model: "my-model",
  messages: [{ role: "user", content: "Say hello" }],
});
console.log(reply.choices[0].message.content);
const response = await client.responses.create({ model: "my-model", input: "Say hello" });
console.log(response.output_text);`,
      },
    ],
  },
  {
    name: "Anthropic SDK for JavaScript",
    install: "npm install @anthropic-ai/sdk",
    version: "1.11.0",
    test: TEST,
    blocks: [
      {
        language: "js",
        text: `import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({
  baseURL: "http://127.0.0.1:8080",
  apiKey: process.env.GATEWAY_KEY,
  authToken: null,
});
const reply = await client.messages.create({
  model: "my-model",
  max_tokens: 1000,
  messages: [{ role: "user", content: "Say hello" }],
});
console.log(reply.content.find(({ type }) => type === "text").text);`,
      },
    ],
  },
  {
    name: "Vercel AI SDK",
    install: "npm install ai @ai-sdk/openai-compatible",
    version: "7.0.173",
    test: TEST,
    blocks: [
      {
        language: "js",
        text: `import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText } from "ai";

const gateway = createOpenAICompatible({
  name: "gateway",
  baseURL: "http://127.0.0.1:8080/v1",
  apiKey: process.env.GATEWAY_KEY,
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const { text } = await generateText({ model: gateway("my-model"), prompt: "Say hello" });
console.log(text);`,
      },
    ],
    note: `\`createAnthropic({ baseURL, apiKey })\` of \`@ai-sdk/anthropic\` takes the same address, with \`/v1\`. So does \`createOpenAI\` of
\`@ai-sdk/openai\`: there, use \`.chat("my-model")\`, or set \`providerOptions: { openai: { store: false } }\`, because
the gateway [stores nothing](responses.md#nothing-is-stored).`,
  },
  {
    name: "LangChain.js",
    install: "npm install @langchain/openai",
    version: "1.6.0",
    test: TEST,
    blocks: [
      {
        language: "js",
        text: `import { ChatOpenAI } from "@langchain/openai";

const model = new ChatOpenAI({
  model: "my-model",
  apiKey: process.env.GATEWAY_KEY,
  configuration: { baseURL: "http://127.0.0.1:8080/v1" },
});
const reply = await model.invoke("Say hello");
console.log(reply.text);`,
      },
    ],
    note: `When you bind tools, pass \`tool_choice: "auto"\`, or set \`compat.tool_choice_default\` in the [configuration](configuration.md#compat-and-currency).
\`new ChatAnthropic({ model, apiKey, anthropicApiUrl: "http://127.0.0.1:8080" })\` works too.`,
  },
  {
    name: "OpenAI Agents SDK for JavaScript",
    install: "npm install @openai/agents openai zod",
    version: "0.20.0",
    test: TEST,
    blocks: [
      {
        language: "js",
        text: `import { Agent, run, setDefaultOpenAIClient, setTracingDisabled } from "@openai/agents";
import OpenAI from "openai";

setDefaultOpenAIClient(
  new OpenAI({ baseURL: "http://127.0.0.1:8080/v1", apiKey: process.env.GATEWAY_KEY }),
);
setTracingDisabled(true);
const agent = new Agent({ name: "Greeter", instructions: "Be brief.", model: "my-model" });
const result = await run(agent, "Say hello");
console.log(result.finalOutput);`,
      },
    ],
    note: `Traces would go to OpenAI, so switch them off. \`setOpenAIAPI("chat_completions")\` selects chat completions instead of the Responses API.`,
  },
];
