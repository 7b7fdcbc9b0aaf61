// The interface of credentials: headers that are valid for a while, and are created for each
// request or renewed before they expire.
import type { CheckContext } from "../../../config/setting.ts";
import type { ReachServices } from "../../../core/extension/places.ts";
import type { Destination } from "../../../core/routing/model.ts";
import type { Check } from "../../../core/schema/checker.ts";
import type { Transport, UpstreamResponse } from "../../../core/upstream/transport.ts";

export type Headers = Readonly<Record<string, string>>;

/** A request that is about to be sent by POST. */
export interface OutgoingRequest {
  /** The whole address, with its query. */
  readonly url: string;
  /** All headers except those of the credentials. */
  readonly headers: Headers;
  /** JSON. It is sent in UTF-8. */
  readonly body: string;
  /** The format of the model that is asked, as Provider.dialect. */
  readonly dialect: string;
}

/** Authenticates the requests to one provider. */
export interface Credentials {
  /**
   * The headers that authenticate this request. Rejects with an Error for the operator, whose
   * message shows no secrets.
   */
  headersFor(request: OutgoingRequest): Headers | Promise<Headers>;
  /**
   * Reports that the provider answered 401 or 403 to a request with these headers. True: the next
   * headers will differ, so the request is sent once more.
   */
  refused(headers: Headers, response: UpstreamResponse): boolean;
}

/** What credentials are made from. */
export interface CredentialServices extends ReachServices {
  /** The provider, and the settings of its row. */
  readonly destination: Destination;
  /**
   * Calls a token service as the provider is called: through the same proxy and with the same
   * certificates.
   */
  readonly transport: Transport;
}

/** The checked settings of `credentials`: data only, because workers get a copy of them. */
export interface CredentialSettings {
  /** The settings that logs must not show. Undefined: not set. */
  readonly secrets: readonly (string | undefined)[];
}

/** A value of `credentials.type`. `S`: its checked settings. */
export interface CredentialType<S extends CredentialSettings> {
  /** The check of the whole of `credentials`, `type` included. */
  check(context: CheckContext): Check<S>;
  /** Creates the credentials of one provider. Opens nothing before the first request. */
  create(settings: S, services: CredentialServices): Credentials;
}
