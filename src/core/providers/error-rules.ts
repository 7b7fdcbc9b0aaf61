// What a provider's refusal means: HTTP status and the error's texts to a code of the gateway's own
// and to who has to act. WIRE.md 4.3. A message may quote what the client sent. Patterns that would
// blame anybody but this request therefore match at the beginning of a message only.
import type { ProviderErrorCode, ProviderErrorDetail } from "./provider-error.ts";

export interface ErrorRule {
  readonly status: RegExp;
  /** Are looked for in the error's code and type. */
  readonly names?: RegExp;
  /**
   * Are looked for in the error's code and type, and in its message. Without names and messages the
   * status is enough.
   */
  readonly messages?: readonly RegExp[];
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
/** The provider is alive, but could not process this content. */
const CONTENT_FAILED = { code: "upstream_error", fromContent: true } as const;

/** The first rule that matches counts. The last one matches everything. */
export const ERROR_RULES: readonly ErrorRule[] = [
  {
    ...KEY_REFUSED,
    status: /^(400|413|422)$/,
    names: /invalid_api_key|api_key_(invalid|expired)/i,
    messages: [
      /^api[ _]key[ _](invalid|not[ _](valid|found)|expired)|^invalid[ _]api[ _]key/i,
      /^incorrect api key|^your credit balance|^user location is not supported/i,
    ],
  },
  {
    ...CONTENT_FAILED,
    status: /^(400|413|422|424|5..)$/,
    names: /tool_use_failed|json_validate_failed|output_parse_failed/i,
    messages: [
      /^(the )?model (produced|generated) invalid|^error parsing tool call/i,
      /^failed to parse (input|messages|tool call|grammar)|^failed to generate (json|output)/i,
      /^xml syntax error|^jinja exception/i,
    ],
  },
  { ...CONTENT_FAILED, status: /^424$/ },
  {
    code: "context_length_exceeded",
    status: /^(400|413|422)$/,
    messages: [
      /context[ _]length|context window|context limit|maximum context|exceed_context_size/i,
      /prompt is too long|too[ _]many[ _]((prompt|input)[ _])?tokens|input token count/i,
      /reduce the length|maximum prompt length|exceeds max length|more than max tokens/i,
      /exceeded model token limit|range of input length/i,
    ],
  },
  {
    code: "content_filter",
    status: /^(400|413|422|403)$/,
    messages: [
      /content[ _]filter|content[ _]policy|content management policy|data_inspection/i,
      /content safety|safety (system|filter|polic)|sensitive[_ ](content|words?)/i,
      /moderation[_ ](blocked|failed)|requires moderation|violates usage guidelines/i,
    ],
  },
  { code: "upstream_rejected", status: /^(400|413|422)$/ },
  {
    code: "upstream_rejected",
    status: /^(403|404)$/,
    messages: [/permission to access the file|^no such file object/i],
  },
  // A firewall in front of the provider rejects the content with a page of its own.
  { ...GATEWAY_REFUSED, status: /^403$/, messages: [/^\s*<(!doctype|html)/i], fromContent: true },
  // The account has credit, but not enough for this request.
  {
    ...KEY_REFUSED,
    status: /^402$/,
    messages: [/fewer max_tokens|^prompt tokens limit exceeded/i],
    fromContent: true,
  },
  { ...KEY_REFUSED, status: /^(401|402|403)$/ },
  {
    ...KEY_REFUSED,
    status: /^429$/,
    messages: [/insufficient_quota|insufficient balance|^1113 /i],
  },
  {
    code: "model_overloaded",
    status: /^429$/,
    messages: [/^request too large/i],
    fromContent: true,
  },
  { code: "model_overloaded", status: /^(408|409|425|429|503|529)$/ },
  { ...GATEWAY_REFUSED, status: /^4..$/ },
  { code: "upstream_error", status: /^.*$/ },
];

/** The status that an error's code or type stands for, where an error inside a 200 states none. */
export const STATUS_BY_NAME: readonly { readonly status: number; readonly names: RegExp }[] = [
  { status: 429, names: /insufficient_quota|rate_limit|too_many_requests/i },
  { status: 401, names: /authentication|invalid_api_key|permission|insufficient_balance|billing/i },
  { status: 404, names: /not_found/i },
  { status: 413, names: /request_too_large/i },
  { status: 529, names: /overload|unavailable/i },
  { status: 400, names: /context_length|exceed_context|too_many_(prompt|input)_tokens/i },
  { status: 400, names: /content_filter|content_policy|invalid_request/i },
];
