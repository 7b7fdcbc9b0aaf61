// Credentials of Amazon: keys that sign each request, from the configuration or from the machine.
import { strict } from "../../../../config/fields.ts";
import type { CheckContext } from "../../../../config/setting.ts";
import { literal, optional, refine, fail, type Infer } from "../../../../core/schema/checker.ts";
import {
  createLeaseCache,
  type Credentials,
  type CredentialServices,
  type CredentialType,
  type Lease,
  reportFailure,
  serviceAddress,
} from "../../token-services/index.ts";
import { signedHeaders, type AwsKeys } from "./signature.ts";
import { findKeys, VARIABLES } from "./sources.ts";

/** Amazon refuses signatures if this machine's clock differs by more than about this. */
const MAX_SKEW_MS = 240_000;

const check = ({ credential, env }: CheckContext) =>
  refine(
    strict({
      type: literal("aws"),
      /** Absent, with the secret: the keys are found in the places that bedrock.md names. */
      access_key_id: optional(credential),
      secret_access_key: optional(credential),
      /** The token of temporary keys. Absent: the keys do not expire. */
      session_token: optional(credential),
      /** The address of STS, or of the metadata service. */
      endpoint: optional(serviceAddress),
    }),
    ({ type, access_key_id, secret_access_key, session_token, endpoint }) => {
      if ((access_key_id === undefined) !== (secret_access_key === undefined))
        fail(
          "invalid_parameter_combination",
          "access_key_id and secret_access_key belong together",
        );
      const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = env;
      const stated = keysOf(access_key_id, secret_access_key, session_token);
      const keys = stated ?? keysOf(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN);
      return {
        type,
        endpoint,
        keys,
        env: Object.fromEntries(VARIABLES.map((name) => [name, env[name]])),
        secrets: [
          keys?.secretAccessKey,
          keys?.sessionToken,
          env["AWS_CONTAINER_AUTHORIZATION_TOKEN"],
        ],
      };
    },
  );

function keysOf(
  accessKeyId: string | undefined,
  secretAccessKey: string | undefined,
  sessionToken: string | undefined,
): AwsKeys | undefined {
  if (!accessKeyId || !secretAccessKey) return undefined;
  return { accessKeyId, secretAccessKey, sessionToken: sessionToken || undefined };
}

type AwsSettings = Infer<ReturnType<typeof check>>;

export const aws: CredentialType<AwsSettings> = { check, create };

/** Credentials that sign each request. Without `keys`, finds those of the machine. */
function create(
  { keys: fixed, ...places }: AwsSettings,
  services: CredentialServices,
): Credentials {
  const { clock, diagnose, destination } = services;
  const { region = "" } = destination.settings;
  const obtain = async (): Promise<Lease<AwsKeys>> =>
    fixed ? { value: fixed, expiresAt: Infinity } : await findKeys({ ...places, region }, services);
  /** Amazon's clock minus this machine's, in milliseconds. */
  let skew = 0;
  const now = (): number => clock.now() + skew;
  // Amazon states the end of keys by its own clock.
  const leases = createLeaseCache(obtain, { ...clock, now }, reportFailure(services));
  let latest: AwsKeys | undefined;

  /** Corrects `skew` by the date of an answer. False: the clock was right. */
  function hasCorrected(date: string | null): boolean {
    const difference = Date.parse(date ?? "") - clock.now();
    if (!(Math.abs(difference - skew) > MAX_SKEW_MS)) return false;
    skew = difference;
    const { provider } = destination;
    const seconds = Math.round(difference / 1000);
    diagnose({ event: "clock_differs", level: "warn", provider, seconds });
    return true;
  }

  return {
    async headersFor(request) {
      latest = await leases.get();
      const service = request.dialect === "converse" ? "bedrock" : "bedrock-mantle";
      return signedHeaders(request, latest, { region, service, now: now() });
    },
    refused({ Authorization = "" }, { headers }) {
      if (hasCorrected(headers.get("date"))) return true;
      if (fixed || !latest) return false;
      return !Authorization.includes(`Credential=${latest.accessKeyId}/`) || leases.refuse(latest);
    },
  };
}
