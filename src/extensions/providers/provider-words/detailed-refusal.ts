// Refusals with details on which Anthropic's SDKs act. They concern objects that the client refers
// to, such as a thread that the provider does not have.
import { ProviderError } from "../../../core/providers/provider-error.ts";
import { asArray, asObject, asString } from "../../../core/schema/untrusted-json.ts";

export interface RefusalDetails {
  readonly error_code: string;
  /** The fields of the request that cannot be combined. Absent: the provider names none. */
  readonly unsupported?: readonly string[];
}

export class DetailedRefusal extends ProviderError {
  /** 400 or 404. */
  readonly status: number;
  readonly details: RefusalDetails;
  constructor(status: number, details: RefusalDetails, providerMessage: string | undefined) {
    super("upstream_rejected", `the provider refused the request: ${details.error_code}`, {
      status,
      providerMessage,
    });
    this.status = status;
    this.details = details;
  }
}

/** These codes concern the request alone. Others may concern the operator's account. */
const OF_REQUEST = /^(thread|compaction|file|tool)_[a-z_]{1,60}$/;
/** Other fields that a provider may name here are settings of the operator's account. */
const FIELDS: readonly unknown[] = ["cache_control", "context_management", "fallbacks", "thinking"];

/** Undefined: the answer is no such refusal. */
export function detailedRefusal(status: number, body: unknown): DetailedRefusal | undefined {
  const { details, message } = asObject(asObject(body)["error"]);
  const { error_code, unsupported } = asObject(details);
  const code = asString(error_code);
  if (code === undefined || !OF_REQUEST.test(code)) return undefined;
  if (status !== 400 && status !== 404) return undefined;
  const fields = FIELDS.filter((field) => asArray(unsupported).includes(field)) as string[];
  const stated = { error_code: code, ...(fields.length > 0 && { unsupported: fields }) };
  return new DetailedRefusal(status, stated, asString(message));
}
