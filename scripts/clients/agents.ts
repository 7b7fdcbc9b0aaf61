// Programs that people start: coding agents, chat in a terminal or a browser.
import type { ClientProgram } from "../clients.ts";

const TEST = "test/clients/programs.test.ts";

export const AGENTS: readonly ClientProgram[] = [
  {
    name: "Claude Code",
    install: "npm install -g @anthropic-ai/claude-code",
    version: "2.1.197",
    test: "test/clients/claude-code.test.ts",
    blocks: [
      {
        language: "text",
        text: `export ANTHROPIC_BASE_URL=http://127.0.0.1:8080
export ANTHROPIC_AUTH_TOKEN=$GATEWAY_KEY
export ANTHROPIC_DEFAULT_HAIKU_MODEL=my-model
export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
claude --model my-model`,
      },
    ],
    note: `\`ANTHROPIC_DEFAULT_HAIKU_MODEL\` is the model for small jobs, such as titles. The fourth line stops Claude Code's calls to other services.`,
  },
  {
    name: "Codex",
    install: "npm install -g @openai/codex",
    version: "0.169.0",
    test: "test/clients/codex.test.ts",
    blocks: [
      {
        language: "toml",
        file: "~/.codex/config.toml",
        text: `model = "my-model"
model_provider = "gateway"
# This line and the last four stop Codex's own calls to its vendor.
check_for_update_on_startup = false

[model_providers.gateway]
name = "chat-gateway"
base_url = "http://127.0.0.1:8080/v1"
env_key = "GATEWAY_KEY"
wire_api = "responses"

[analytics]
enabled = false
[features]
plugins = false`,
      },
    ],
    note: `Then start \`codex\`. Do not set \`supports_websockets\`. Codex shapes its requests by the model name. If it does not know the
name, it warns about missing metadata and edits files with shell commands. With a name such as \`gpt-5.5\` it also offers its patch tool; you can
give an alias or a model such a name. Codex always offers web search, which the gateway leaves out.`,
  },
  {
    name: "opencode",
    version: "1.18.33",
    tried: true,
    blocks: [
      {
        language: "text",
        file: "~/.config/opencode/opencode.json",
        text: `{
  "autoupdate": false, "share": "disabled",
  "model": "gateway/my-model", "small_model": "gateway/my-model",
  "provider": { "gateway": {
    "npm": "@ai-sdk/openai-compatible", "name": "Gateway",
    "options": { "baseURL": "http://127.0.0.1:8080/v1", "apiKey": "{env:GATEWAY_KEY}" },
    "models": { "my-model": {
      "reasoning": true, "tool_call": true, "attachment": true,
      "modalities": { "input": ["text", "image"], "output": ["text"] },
      "interleaved": { "field": "reasoning_content" },
      "options": { "thinking": { "type": "enabled" } },
      "limit": { "context": 400000, "output": 64000 }
    } }
  } }
}`,
      },
    ],
    note: `\`interleaved\` and \`options.thinking\` show the model's reasoning and send it back in the next turn. With \`"npm": "@ai-sdk/anthropic"\` opencode
uses the Messages API, with \`"@ai-sdk/openai"\` the Responses API, at the same \`baseURL\`.`,
  },
  {
    name: "Qwen Code",
    version: "0.15.10",
    tried: true,
    blocks: [
      {
        language: "text",
        text: `export OPENAI_BASE_URL=http://127.0.0.1:8080/v1 OPENAI_API_KEY=$GATEWAY_KEY OPENAI_MODEL=my-model
qwen --auth-type openai`,
      },
    ],
  },
  {
    name: "Cline",
    version: "3.0.65",
    tried: true,
    blocks: [
      {
        language: "text",
        text: `cline auth openai-compatible -k $GATEWAY_KEY -m my-model -b http://127.0.0.1:8080/v1
cline -P openai-compatible -m my-model "the task"`,
      },
    ],
  },
  {
    name: "Continue",
    version: "1.5.47",
    tried: true,
    blocks: [
      {
        language: "yaml",
        file: "config.yaml",
        text: `name: gateway
version: 1.0.0
schema: v1
models:
  - name: gateway
    provider: openai
    model: my-model
    apiBase: http://127.0.0.1:8080/v1
    apiKey: sk-my-key
    roles: [chat, edit, apply]`,
      },
    ],
    note: "In a terminal, start it with `cn --config config.yaml`.",
  },
  {
    name: "pi",
    version: "0.73.1",
    tried: true,
    blocks: [
      {
        language: "text",
        file: "~/.pi/agent/models.json",
        text: `{ "providers": { "gateway": {
  "baseUrl": "http://127.0.0.1:8080/v1", "api": "openai-completions", "apiKey": "GATEWAY_KEY",
  "models": [ {
    "id": "my-model", "name": "my-model", "reasoning": true, "input": ["text", "image"],
    "contextWindow": 400000, "maxTokens": 64000,
    "cost": { "input": 10, "output": 20, "cacheRead": 1, "cacheWrite": 0 }
  } ]
} } }`,
      },
    ],
    note: "Then start `pi --provider gateway --model my-model`. `apiKey` is the name of an environment variable.",
  },
  {
    name: "aider",
    version: "0.86.2",
    tried: true,
    blocks: [
      {
        language: "text",
        text: `export OPENAI_API_BASE=http://127.0.0.1:8080/v1 OPENAI_API_KEY=$GATEWAY_KEY
aider --model openai/my-model --no-show-model-warnings`,
      },
    ],
  },
  {
    name: "mini-swe-agent",
    version: "2.4.6",
    tried: true,
    blocks: [
      {
        language: "text",
        text: `export OPENAI_API_BASE=http://127.0.0.1:8080/v1 OPENAI_API_KEY=$GATEWAY_KEY
MSWEA_COST_TRACKING=ignore_errors mini -m openai/my-model -t "the task" -y`,
      },
    ],
  },
  {
    name: "llm",
    install: "pip install llm",
    version: "0.36",
    test: TEST,
    blocks: [
      {
        language: "yaml",
        file: "~/.config/io.datasette.llm/extra-openai-models.yaml",
        text: `- model_id: gw
  model_name: my-model
  api_base: "http://127.0.0.1:8080/v1"
  api_key_name: gateway
  supports_tools: true
  supports_schema: true`,
      },
      {
        language: "text",
        text: `llm keys set gateway --value $GATEWAY_KEY\nllm -m gw "Say hello"`,
      },
    ],
  },
  {
    name: "Open WebUI",
    blocks: [
      {
        language: "text",
        text: `export OPENAI_API_BASE_URL=http://127.0.0.1:8080/v1 OPENAI_API_KEY=$GATEWAY_KEY
open-webui serve --port 3000`,
      },
    ],
    note: `In a running installation, add a connection with this address and key under Admin Settings, Connections, OpenAI. Open WebUI uses port 8080
unless you choose another, and so does the gateway.`,
  },
  {
    name: "lm-evaluation-harness",
    tried: true,
    blocks: [
      {
        language: "text",
        text: `OPENAI_API_KEY=$GATEWAY_KEY lm_eval --model local-chat-completions --apply_chat_template \\
  --model_args model=my-model,base_url=http://127.0.0.1:8080/v1/chat/completions,num_concurrent=2 \\
  --tasks gsm8k`,
      },
    ],
  },
  {
    name: "GuideLLM",
    tried: true,
    blocks: [
      {
        language: "text",
        text: `guidellm run --profile kind=synchronous --constraint kind=max_requests,count=3 \\
  --backend kind=openai_http,target=http://127.0.0.1:8080,model=my-model,api_key=$GATEWAY_KEY,\\
request_format=/v1/chat/completions,validate_backend=false \\
  --data kind=json_file,path=prompts.jsonl`,
      },
    ],
  },
];
