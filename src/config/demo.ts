// The configuration that runs when there is none: an offline model, a key that everybody knows, loopback only.

const common = {
  provider: "demo",
  supports: ["tools", "json_object", "json_schema", "logprobs"],
  context_tokens: 32_768,
  max_output_tokens: 4_096,
};
const prices = {
  chat: { input_cache_hit: 0.01, input_cache_miss: 0.1, output: 0.2 },
  reasoner: { input_cache_hit: 0.05, input_cache_miss: 0.5, output: 1 },
};

/** As an operator would write it in gateway.json. */
export const demoConfig = {
  providers: { demo: { dialect: "demo" } },
  models: {
    "demo-chat": { ...common, quality_score: 50, price: prices.chat },
    "demo-reasoner": { ...common, reasoning: true, reasoning_score: 50, quality_score: 60, price: prices.reasoner },
  },
  aliases: { "auto/reasoning": { policy: "reasoning" }, "auto/chat": { policy: "value" } },
  keys: [{ account: "demo", key: "sk-demo" }],
};
