// Credentials that are a token in the header Authorization.
import type { CredentialServices, CredentialSettings } from "./credentials.ts";
import { createRenewing, type Lease } from "./renewing.ts";
import { reportFailure } from "./token-service.ts";

/** `obtain` gets a token. It rejects with an Error whose message is for the operator. */
export const bearerSettings = (
  secrets: CredentialSettings["secrets"],
  obtain: (services: CredentialServices) => Promise<Lease<string>>,
): CredentialSettings => ({
  secrets,
  create(services) {
    const token = createRenewing(() => obtain(services), services.clock, reportFailure(services));
    const headers = (value: string) => ({ Authorization: `Bearer ${value}` });
    return {
      headersFor() {
        const value = token.get();
        return typeof value === "string" ? headers(value) : value.then(headers);
      },
      refused: ({ Authorization = "" }) => token.refuse(Authorization.replace("Bearer ", "")),
    };
  },
});
