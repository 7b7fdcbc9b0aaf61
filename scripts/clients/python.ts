// Libraries for Python, each with a program that prints one reply.
import type { ClientProgram } from "../clients.ts";

const TEST = "test/clients/programs.test.ts";

export const PYTHON_PROGRAMS: readonly ClientProgram[] = [
  {
    name: "OpenAI SDK for Python",
    install: "pip install openai",
    version: "3.52.0",
    test: TEST,
    blocks: [
      {
        language: "python",
        text: `import os
from openai import OpenAI

client = OpenAI(base_url="http://127.0.0.1:8080/v1", api_key=os.environ["GATEWAY_KEY"])
reply = client.chat.completions.create(
    model="my-model", messages=[{"role": "user", "content": "Say hello"}]
)
print(reply.choices[0].message.content)
print(client.responses.create(model="my-model", input="Say hello").output_text)`,
      },
    ],
  },
  {
    name: "Anthropic SDK for Python",
    install: "pip install anthropic",
    version: "2.12.0",
    test: TEST,
    blocks: [
      {
        language: "python",
        text: `import os
from anthropic import Anthropic

client = Anthropic(base_url="http://127.0.0.1:8080", api_key=os.environ["GATEWAY_KEY"])
reply = client.messages.create(
    model="my-model", max_tokens=1000, messages=[{"role": "user", "content": "Say hello"}]
)
print(next(block.text for block in reply.content if block.type == "text"))`,
      },
    ],
    note: "Pass `thread=False` to `tool_runner(...)`, unless the model is Anthropic's.",
  },
  {
    name: "OpenAI Agents SDK for Python",
    install: "pip install openai-agents",
    version: "0.24.0",
    test: TEST,
    blocks: [
      {
        language: "python",
        text: `import os
from agents import Agent, Runner, set_default_openai_client, set_tracing_disabled
from openai import AsyncOpenAI

client = AsyncOpenAI(base_url="http://127.0.0.1:8080/v1", api_key=os.environ["GATEWAY_KEY"])
set_default_openai_client(client, use_for_tracing=False)
set_tracing_disabled(True)
agent = Agent(name="Greeter", instructions="Be brief.", model="openai/my-model")
print(Runner.run_sync(agent, "Say hello").final_output)`,
      },
    ],
    note: `The SDK takes the part before the first slash of a model name for itself, so write \`openai/\` in front of the gateway's name. Do not use
\`auto_previous_response_id\`: the gateway stores no responses.`,
  },
  {
    name: "LangChain",
    install: "pip install langchain-openai",
    version: "1.7.4",
    test: TEST,
    blocks: [
      {
        language: "python",
        text: `import os
from langchain_openai import ChatOpenAI

model = ChatOpenAI(
    model="my-model",
    base_url="http://127.0.0.1:8080/v1",
    api_key=os.environ["GATEWAY_KEY"],
    stream_usage=True,
)
print(model.invoke("Say hello").text)`,
      },
    ],
    note: `\`use_responses_api=True\` selects the Responses API. \`ChatAnthropic(model=..., base_url="http://127.0.0.1:8080", api_key=...)\` uses the Messages
API. \`create_agent\` and LangGraph work with all of them.`,
  },
  {
    name: "LlamaIndex",
    install: "pip install llama-index-llms-openai-like",
    version: "0.8.1",
    test: TEST,
    blocks: [
      {
        language: "python",
        text: `import os
from llama_index.llms.openai_like import OpenAILike

llm = OpenAILike(
    model="my-model",
    api_base="http://127.0.0.1:8080/v1",
    api_key=os.environ["GATEWAY_KEY"],
    is_chat_model=True,
    is_function_calling_model=True,
    context_window=128000,
)
print(llm.complete("Say hello").text)`,
      },
    ],
    note: `\`llms.OpenAI\` refuses model names that it does not know. Without \`is_chat_model=True\`, \`OpenAILike\` calls \`/v1/completions\`, which the gateway
does not have.`,
  },
  {
    name: "pydantic-ai",
    install: "pip install 'pydantic-ai-slim[openai]'",
    version: "2.31.1",
    test: TEST,
    blocks: [
      {
        language: "python",
        text: `import os
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

provider = OpenAIProvider(base_url="http://127.0.0.1:8080/v1", api_key=os.environ["GATEWAY_KEY"])
agent = Agent(OpenAIChatModel("my-model", provider=provider))
print(agent.run_sync("Say hello").output)`,
      },
    ],
    note: `\`OpenAIResponsesModel\` takes the same provider. With \`anthropic\` below version 2,
\`AnthropicModel("my-model", provider=AnthropicProvider(base_url="http://127.0.0.1:8080", api_key=...))\` uses the Messages API.`,
  },
  {
    name: "instructor",
    install: "pip install instructor",
    version: "1.17.0",
    test: TEST,
    blocks: [
      {
        language: "python",
        text: `import os
import instructor
from openai import OpenAI
from pydantic import BaseModel


class Greeting(BaseModel):
    text: str


client = instructor.from_openai(
    OpenAI(base_url="http://127.0.0.1:8080/v1", api_key=os.environ["GATEWAY_KEY"])
)
greeting = client.create(
    model="my-model",
    response_model=Greeting,
    messages=[{"role": "user", "content": "Say hello"}],
)
print(greeting.model_dump_json())`,
      },
    ],
    note: `\`instructor.from_anthropic(Anthropic(base_url="http://127.0.0.1:8080", api_key=...))\` works too.`,
  },
  {
    name: "DSPy",
    install: "pip install dspy",
    version: "3.4.1",
    test: TEST,
    blocks: [
      {
        language: "python",
        text: `import os
import dspy

lm = dspy.LM(
    "openai/my-model",
    api_base="http://127.0.0.1:8080/v1",
    api_key=os.environ["GATEWAY_KEY"],
)
print(lm("Say hello")[0])`,
      },
    ],
    note: '`model_type="responses"` selects the Responses API.',
  },
  {
    name: "smolagents",
    install: "pip install 'smolagents[openai]'",
    version: "1.26.0",
    test: TEST,
    blocks: [
      {
        language: "python",
        text: `import os
from smolagents import OpenAIServerModel

model = OpenAIServerModel(
    model_id="my-model",
    api_base="http://127.0.0.1:8080/v1",
    api_key=os.environ["GATEWAY_KEY"],
)
print(model([{"role": "user", "content": "Say hello"}]).content)`,
      },
    ],
  },
  {
    name: "LiteLLM's SDK",
    install: "pip install litellm",
    version: "1.110.2",
    test: TEST,
    blocks: [
      {
        language: "python",
        text: `import os
from litellm import completion

reply = completion(
    model="openai/my-model",
    api_base="http://127.0.0.1:8080/v1",
    api_key=os.environ["GATEWAY_KEY"],
    messages=[{"role": "user", "content": "Say hello"}],
)
print(reply.choices[0].message.content)`,
      },
    ],
    note: `\`model="anthropic/my-model"\` with \`api_base="http://127.0.0.1:8080"\` uses the Messages API. The prefixes \`hosted_vllm/\`, \`litellm_proxy/\`,
\`openrouter/\` and \`deepseek/\` work too.`,
  },
  {
    name: "crewAI",
    install: "pip install crewai",
    tried: true,
    blocks: [
      {
        language: "python",
        text: `import os
from crewai import LLM

llm = LLM(
    model="openai/my-model",
    base_url="http://127.0.0.1:8080/v1",
    api_key=os.environ["GATEWAY_KEY"],
)
print(llm.call("Say hello"))`,
      },
    ],
  },
  {
    name: "AutoGen",
    install: "pip install 'autogen-ext[openai]'",
    tried: true,
    blocks: [
      {
        language: "python",
        text: `import os
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(
    model="my-model",
    base_url="http://127.0.0.1:8080/v1",
    api_key=os.environ["GATEWAY_KEY"],
    model_info={
        "vision": True,
        "function_calling": True,
        "json_output": True,
        "structured_output": True,
        "family": "unknown",
    },
)`,
      },
    ],
  },
  {
    name: "Semantic Kernel",
    install: "pip install semantic-kernel",
    tried: true,
    blocks: [
      {
        language: "python",
        text: `import os
from openai import AsyncOpenAI
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion

client = AsyncOpenAI(base_url="http://127.0.0.1:8080/v1", api_key=os.environ["GATEWAY_KEY"])
service = OpenAIChatCompletion(ai_model_id="my-model", async_client=client)`,
      },
    ],
  },
  {
    name: "Haystack",
    install: "pip install haystack-ai",
    tried: true,
    blocks: [
      {
        language: "python",
        text: `from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.utils import Secret

generator = OpenAIChatGenerator(
    model="my-model",
    api_base_url="http://127.0.0.1:8080/v1",
    api_key=Secret.from_env_var("GATEWAY_KEY"),
)`,
      },
    ],
  },
];
