// Tokens of Microsoft Entra: for an application, by its secret, or for the machine's own identity.
import { strict, wellFormed } from "../../../config/fields.ts";
import type { CheckContext } from "../../../config/setting.ts";
import { fail, literal, optional, refine, type Infer } from "../../../core/schema/checker.ts";
import {
  bearerCredentials,
  type CredentialServices,
  type CredentialType,
  type Lease,
  localToken,
  remoteToken,
  serviceAddress,
} from "../token-services/index.ts";

const ENTRA = "https://login.microsoftonline.com";
const METADATA = "http://169.254.169.254";
/** The scope of all models of Azure. */
const SCOPE = "https://cognitiveservices.azure.com/.default";

const check = ({ credential, env }: CheckContext) =>
  refine(
    strict({
      type: literal("azure"),
      /** The directory of the application. */
      tenant_id: optional(wellFormed(1)),
      /** The application or, without a secret, an identity of the machine. Absent: its default. */
      client_id: optional(wellFormed(1)),
      client_secret: optional(credential),
      /** The scope of the token. Absent: SCOPE. */
      scope: optional(wellFormed(1)),
      /** Replaces the address of Entra, without its path, or of the metadata service. */
      endpoint: optional(serviceAddress),
    }),
    (settings) => {
      const { tenant_id, client_secret } = settings;
      const application = ["tenant_id", "client_id", "client_secret"] as const;
      const missing = application.find((name) => settings[name] === undefined);
      if (missing !== undefined && (tenant_id ?? client_secret) !== undefined)
        fail("missing_required_parameter", "is required with the others of an application", [
          missing,
        ]);
      const { AZURE_AUTHORITY_HOST: authority, IDENTITY_ENDPOINT, IDENTITY_HEADER } = env;
      return {
        ...settings,
        /** Entra's address. */
        authority: settings.endpoint ?? (authority?.replace(/\/+$/, "") || ENTRA),
        /** The address and the secret that App Service sets in the environment. */
        appService: { address: IDENTITY_ENDPOINT, secret: IDENTITY_HEADER },
        secrets: [client_secret, IDENTITY_HEADER],
      };
    },
  );

type AzureSettings = Infer<ReturnType<typeof check>>;

export const azure: CredentialType<AzureSettings> = {
  check,
  create(settings, services) {
    const obtain = settings.client_secret === undefined ? tokenOfMachine : tokenOfApplication;
    return bearerCredentials(() => obtain(settings, services), services);
  },
};

function tokenOfApplication(
  { tenant_id = "", client_id = "", client_secret = "", scope = SCOPE, authority }: AzureSettings,
  services: CredentialServices,
): Promise<Lease<string>> {
  const address = `${authority}/${encodeURIComponent(tenant_id)}/oauth2/v2.0/token`;
  const fields = { grant_type: "client_credentials", client_id, client_secret, scope };
  return remoteToken(["Entra", address], fields, services);
}

/** Asks App Service if the environment has its address, otherwise the metadata service. */
function tokenOfMachine(
  { scope = SCOPE, client_id, endpoint, appService: { address, secret } }: AzureSettings,
  services: CredentialServices,
): Promise<Lease<string>> {
  const isAppService = address && secret && endpoint === undefined;
  const query = new URLSearchParams({
    "api-version": isAppService ? "2019-08-01" : "2018-02-01",
    resource: scope.replace(/\/\.default$/, ""),
    ...(client_id !== undefined && { client_id }),
  });
  if (isAppService)
    return localToken(
      ["App Service", `${address}?${query}`],
      { "X-IDENTITY-HEADER": secret },
      services,
    );
  const path = `${endpoint ?? METADATA}/metadata/identity/oauth2/token?${query}`;
  return localToken(["the metadata service", path], { Metadata: "true" }, services);
}
