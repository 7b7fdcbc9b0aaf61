// Refusals with details on which Anthropic's SDKs act. They concern objects that the client refers
// to, such as a thread that the provider does not have.
import { ProviderError } from "../../../core/providers/provider-error.ts";
import { asArray, asCount, asObject, asString } from "../../../core/schema/untrusted-json.ts";

export interface RefusalDetails {
  readonly error_code: string;
  /** The fields of the request that cannot be combined. Absent: the provider names none. */
  readonly unsupported?: readonly string[];
  /** The longest side that an image of this request may have. Absent: none is too long. */
  readonly max_side_length_pixels?: number;
  /** The places of the images that are too large: `messages.0.content.1`. */
  readonly paths?: readonly string[];
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
const OF_REQUEST = /^(thread|compaction|file|tool|available_tools|image)_[a-z_]{1,60}$/;
const IMAGE_PATH = /^messages(\.(\d{1,6}|content)){1,6}$/;
/** Other fields that a provider may name here are settings of the operator's account. */
const FIELDS: readonly unknown[] = ["cache_control", "context_management", "fallbacks", "thinking"];

/** Reads a refusal with such details. Undefined: the answer is another one. */
export function detailedRefusal(status: number, body: unknown): DetailedRefusal | undefined {
  const { details, message } = asObject(asObject(body)["error"]);
  const { error_code, unsupported, max_side_length_pixels, paths } = asObject(details);
  const code = asString(error_code);
  if (code === undefined || !OF_REQUEST.test(code)) return undefined;
  if (status !== 400 && status !== 404) return undefined;
  const fields = FIELDS.filter((field) => asArray(unsupported).includes(field)) as string[];
  const side = asCount(max_side_length_pixels);
  const isPath = (path: unknown): path is string => IMAGE_PATH.test(asString(path) ?? "");
  const stated = {
    error_code: code,
    ...(fields.length > 0 && { unsupported: fields }),
    ...(side && { max_side_length_pixels: side, paths: asArray(paths).filter(isPath) }),
  };
  return new DetailedRefusal(status, stated, asString(message));
}
