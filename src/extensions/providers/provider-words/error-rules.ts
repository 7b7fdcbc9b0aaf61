// The meaning of a provider's refusal: from HTTP status and the error's texts to an error code of
// the gateway and to the party that has to act. wire.md "Provider errors". A message may quote what
// the client sent. Patterns that blame more than this request therefore match only at the beginning
// of a message.
import type {
  ProviderErrorCode,
  ProviderErrorDetail,
} from "../../../core/providers/provider-error.ts";

export interface ErrorRule {
  /**
   * Matches the digits of the HTTP status. For an error inside a 200, that is the status that the
   * error stands for.
   */
  readonly status: RegExp;
  /** Looked for in the error's code and type. */
  readonly names?: RegExp;
  /**
   * Matched with the error's code and type, and with its message. A rule without names and messages
   * needs only the status.
   */
  readonly messages?: readonly RegExp[];
  /** The error code, if the rule matches. */
  readonly code: ProviderErrorCode;
  /** See ProviderErrorDetail. */
  readonly operator?: ProviderErrorDetail["operator"];
  /** See ProviderErrorDetail. */
  readonly fromContent?: true;
}

/** The provider refuses the gateway's key or its account. */
const KEY_REFUSED = { code: "model_unavailable", operator: "key" } as const;
/** The gateway's address or method is wrong. */
const GATEWAY_REFUSED = { code: "model_unavailable", operator: "other" } as const;
/** The model, or its server as it is set up, cannot do what this request needs. */
const MODEL_UNABLE = { code: "model_unavailable", operator: "model", fromContent: true } as const;
/** The provider is alive, but could not process this content. */
const CONTENT_FAILED = { code: "upstream_error", fromContent: true } as const;
/** The request alone exceeds the operator's limit of tokens a minute at the provider. */
const OVER_LIMIT = { code: "model_overloaded", fromContent: true } as const;

// LiteLLM without a database knows only its master key, and answers any other as the last name.
const INVALID_KEY_NAMES = /invalid_api_key|api_key_(invalid|expired)| no_db_connection$/i;
const INVALID_KEY = [
  /^api[ _]key[ _](invalid|not[ _](valid|found)|expired)|^invalid[ _]api[ _]key/i,
  /^incorrect api key|^your credit balance|^user location is not supported/i,
  /^gemini api free tier is not available/i,
];
const CLOSED_NAMES = new RegExp(
  "^arrearage|billing_hard_limit_reached|organization_(restricted|on_hold)|^blocked_api_access" +
    "|^spend_|^cmek_key_| budget_exceeded$",
  "i",
);
/** The account is closed, or its own limit of spending is reached. */
const CLOSED = [
  // Azure's answer to all requests, whatever their content.
  /^your resource has been temporarily blocked/i,
  /^you have reached your specified (workspace )?api usage limits/i,
  /^this organization has been disabled/i,
  /^account \S+ is suspended|^operation not allowed\.?$|^your account is not authorized/i,
];
const NO_MODEL_NAMES = new RegExp(
  "model_(decommissioned|terms_required|not_(available|found|supported))" +
    "|un(known|available)_model|^OperationNotSupported | invalid_model$|unsupported_api_for_model",
  "i",
);
/** The provider no longer has the model, or not for this account, this place or this API. */
const NO_MODEL = [
  /^publisher model \S+ is not servable|^access to \S+ models? is not a(llowed|vailable)/i,
  /^project \S+ is not allowed to use publisher model|^invalid params, unknown model/i,
  /^(the model returned the following errors: )?you have not filled out the required use-case/i,
  /^model (does )?not (exist|found)|^\S+ is not a valid model id|^1211 /i,
  /^model (id : )?\S+ (does not exist|not found|, has no provider|isn't supported on this route)/i,
  /^the model \S+ does not support the \S+ api$|^param incorrect: not supported model/i,
  /^the supported api model names are |^organization policy constraint \S+allowedmodels violated/i,
  /^the provided model identifier is invalid|^(aierror: )*no such model/i,
  /^\/\S+: invalid model name passed in model=/i, // LiteLLM
  /^invocation of model id \S+ with on-demand throughput|^your organization must be verified/i,
];
/** The answers of NVIDIA, LM Studio and llama.cpp while the model's server is out of order. */
const DOWN = [
  /^function id \S+ degraded function|^failed to load model |^no models loaded\. /i,
  /^model is not loaded$/i,
];
const FAILED_NAMES = /tool_use_failed|json_validate_failed|output_parse_failed/i;
const FAILED = [
  /^(the )?model (produced|generated) (invalid|output that does not)|^error parsing tool call/i,
  /^(got exception: )?(unexpected empty grammar stack|invalid diff: )/i,
  // LM Studio quotes llama.cpp.
  /^(engine protocol.{40,60}"message":")?failed to initialize samplers: failed to parse grammar/i,
  /^failed to parse (input|messages|tool call|grammar)/i,
  /^failed to generate (json|output)/i,
  /^(failed to parse xml|xml syntax error|expected element type)|^jinja exception/i,
  /^context size has been exceeded/i,
];
const CONTEXT = [
  /(?<!['"]\w+)context[ _]length|context window|context limit|maximum context|exceed_context_size/i,
  /prompt is too long|too[ _]many[ _]((prompt|input)[ _])?tokens|input token count/i,
  /reduce the length|maximum prompt length|exceeds max length|more than max tokens/i,
  /exceeded model token limit|range of input length|^1261 /i,
  /input is too long for (the )?requested model|input tokens exceeded/i,
  /exceeds maximum input length|longer than the maximum model length/i,
  /maximum allowed input length|prompt token count|exceeds the available context size/i,
  /`inputs` (tokens \+ `max_new_tokens` must be|must have less than)|tokens_limit_reached/i,
  /must be less than max_seq_len|exceed max message tokens|max tokens of \d+ exceeded/i,
  /cannot exceed the total tokens limit|should not exceed max_num_tokens|\[input_too_large\]/i,
  /exceed model maximum \(|too many total text bytes|^total message size \d+ exceeds limit/i,
  /input length \(?\d+( tokens\))? exceeds the maximum (allowed )?length|configured context size/i,
  /prompt length \d+ exceeds the max_model_len/i,
];
const FILTER = [
  /content[ _](filter|policy)|content management policy|data_?inspection/i,
  /^((cyber|bio)_policy|misalignment_policy_violation) /i,
  /content safety|safety (system|filter|polic)|sensitive[_ ]?(content|words?)/i,
  /moderation[_ ](blocked|failed)|requires moderation|violates usage guidelines/i,
  /^content exists risk|violating our usage policy|^request blocked: /i,
  /^invalid prompt: we've limited access to this content/i,
  /^1301 |^base_resp 102[67] |censorship_blocked/i,
];
/** Amazon's answer to a mark for the cache of a model that has none. */
const NO_CACHE = [
  /^you invoked an unsupported model or your request did not allow prompt caching/i,
];
const NO_FILE = [
  /permission to access the file|^no such file object|does not have storage\.objects\.get access/i,
];
const UNABLE = [
  // vLLM, Ollama, the chat templates of Llama 3, Amazon, LM Studio, Volcengine.
  /^("auto" tool choice|tool_choice=("required"|function "[\w-]+")) requires /i,
  /^\S+ does not support (tools|thinking)$|^this model only supports single tool-calls at once/i,
  /^\S+ is not a multimodal model|^(this )?model do(es)? not support image/i,
  /^model only supports text input|^unsupported chat content part type/i, // SGLang, vLLM
  /^this model doesn't support (?!the \S+ field)/i,
  // Gemma at Google.
  /^(function calling|developer instruction) is not enabled for /i,
  // OpenRouter, SGLang, llama.cpp.
  /^no endpoints found that (support|can handle)|^tool_choice 'required' or a named tool /i,
  /^tools param requires|^(image|audio) input is not supported|^unsupported param: /i,
  /^logprobs is not supported with tools|^cannot have 2 or more assistant messages/i,
  /^(unable to generate parser for this template\. [\w ]+:)?\s*-+\s+while executing/i,
  // Conversations that the assistant ends, or that have no text of the user.
  /^requests ending with a model turn are not|^this model does not support assistant message/i,
  /^assistant response prefill is incompatible|^no user query found in messages/i,
  // Schemas of replies and strict tools, which not every cloud has for each of its Claude models.
  /^organization policy constraint \S+allowedpartnermodelfeatures violated/i,
  /^(the model returned.{1,30}: )?(output_config\.format|tools\.\S+\.strict): extra inputs are/i,
  // The switch for thinking that the model's settings name.
  /^reasoning is mandatory for this endpoint|^this model always engages in thinking/i,
  /^(unable to submit request because )?thinking([ _](level|budget) | can't be disabled)/i,
  /^budget \d+ is invalid\. this model only works|^the model does not support setting thinking_/i,
  /^model \S+ does not support parameter reasoningeffort|^chat_template is not supported/i,
  /^unsupported (value|parameter): 'reasoning_effort'|^`?reasoning_effort`? must be one of/i,
  /^unsupported value: '(none|minimal|low|medium|x?high|max)' is not supported with the /i,
  /^.?(reasoning[ _](effort|format|prompt mode)|think value)\S*( \S+)? is not (support|enabl)ed /i,
  /^unsupported thinking type for the current model|^"?thinking\.type\.\w+"? is not supported/i,
  /^function tools with reasoning_effort are not supported|^unexpected reasoning effort /i,
  // A hint for the cache, which OpenAI's newer models and some deployments on Azure do not know.
  /^(prompt_cache_retention is not supported|this model is compatible only with 24h) /i,
];
/** A firewall in front of the provider rejects the content with a page of its own. */
const WEB_PAGE = [/^\s*<(!doctype|html)/i];
/** The account has credit, but not enough for this request. */
const CREDIT_TOO_LOW = [/fewer max_tokens|^prompt tokens limit exceeded|^weight_exceeds_budget /i];
/** OpenRouter holds the account's credit for the requests in progress. */
const CREDIT_HELD = [/^in_flight_budget_exhausted /];
const NO_CREDIT = [
  /insufficient_quota|exceeded_current_quota|insufficient balance|^1113 |^SetLimitExceeded /i,
  /^billing_not_active |credit_balance_exhausted|_(spend|usage)_limit_(exceeded|reached)/i,
  /^your team \S+ has either used all available credits|^your prepayment credits are depleted/i,
  /^your (project|billing account) has exceeded its monthly spending cap|budget_exceeded$/i,
  /^you.{3,60} reached your \w+ usage limit|^your account.{1,60} exhausted its free trial/i,
  /^(aierror: )*you have used up your daily free/i,
];
/** Alibaba's words for its limit of tokens a minute are those of others for an empty account. */
const MINUTE_FULL = [/error-code#token-limit/];
const TOO_LARGE = [/^request too large/i];
/** Groq's code for a request above its limit of tokens a minute. */
const LIMITED_NAMES = /^rate_limit_exceeded/;

const BAD = /^(400|413|422)$/;

/** The first rule that matches counts. The last one matches everything. */
export const ERROR_RULES: readonly ErrorRule[] = [
  { status: BAD, ...KEY_REFUSED, names: INVALID_KEY_NAMES, messages: INVALID_KEY },
  // 412: Fireworks.
  { status: /^4(00|03|12|13|22)$/, ...KEY_REFUSED, names: CLOSED_NAMES, messages: CLOSED },
  { status: BAD, ...GATEWAY_REFUSED, names: NO_MODEL_NAMES, messages: NO_MODEL },
  { status: /^400$/, code: "upstream_error", messages: DOWN },
  { status: /^(40[04]|5..)$/, ...MODEL_UNABLE, messages: UNABLE },
  { status: /^(4(00|13|22|24)|5..)$/, ...CONTENT_FAILED, names: FAILED_NAMES, messages: FAILED },
  { status: /^(400|413|422|424)$/, code: "context_length_exceeded", messages: CONTEXT },
  { status: /^424$/, ...CONTENT_FAILED },
  // 451: StepFun.
  { status: /^(400|413|422|403|451)$/, code: "content_filter", messages: FILTER },
  { status: /^413$/, ...OVER_LIMIT, names: LIMITED_NAMES },
  { status: BAD, code: "upstream_rejected" },
  // A client of the Messages API can send headers that are too large for the provider.
  { status: /^431$/, code: "upstream_rejected" },
  { status: /^(403|404)$/, code: "upstream_rejected", messages: NO_FILE },
  { status: /^403$/, code: "upstream_rejected", messages: NO_CACHE },
  { status: /^403$/, ...GATEWAY_REFUSED, messages: WEB_PAGE, fromContent: true },
  { status: /^402$/, ...KEY_REFUSED, messages: CREDIT_TOO_LOW, fromContent: true },
  { status: /^402$/, code: "model_overloaded", messages: CREDIT_HELD },
  { status: /^(401|402|403)$/, ...KEY_REFUSED },
  { status: /^429$/, code: "model_overloaded", messages: MINUTE_FULL },
  { status: /^429$/, ...KEY_REFUSED, messages: NO_CREDIT },
  { status: /^429$/, ...OVER_LIMIT, messages: TOO_LARGE },
  // 498: Groq has no room for requests of its service tier `flex`. 499: Google gave up under load.
  { status: /^(408|409|425|429|498|499|503|529)$/, code: "model_overloaded" },
  { status: /^4..$/, ...GATEWAY_REFUSED },
  { status: /^.*$/, code: "upstream_error" },
];

/** The status that an error's code or type stands for, where an error inside a 200 states none. */
export const STATUS_BY_NAME: readonly { readonly status: number; readonly names: RegExp }[] = [
  { status: 429, names: /insufficient_quota|rate_limit|too_many_requests|^throttling/i },
  { status: 401, names: /authenticat|invalid_api_key|permission|insufficient_balance|billing/i },
  // OpenAI's Responses API, which fails inside a stream for what the request contains.
  { status: 400, names: /^(invalid_prompt|(\w+_)?image(_\w+)?) /i },
  { status: 404, names: /not_found/i },
  { status: 413, names: /request_too_large/i },
  { status: 529, names: /overload|unavailable|^slow_down /i },
  { status: 400, names: /invalid_request|^invalid_argument /i },
  // Zhipu and Google: the account, its rate or its plan; too busy.
  { status: 429, names: /^(1113|130[2-48]|1310|RESOURCE_EXHAUSTED) / },
  { status: 529, names: /^(1305|1312) / },
  // MiniMax: requests, tokens, connections, growth, plan; key; balance; parameters.
  { status: 429, names: /^base_resp (1002|1039|1041|2045|2056) / },
  { status: 401, names: /^base_resp (1004|2049) / },
  { status: 402, names: /^base_resp 1008 / },
  { status: 400, names: /^base_resp (1042|2013) / },
];
