// Shared by all types of credentials: their interface, values that expire, and calls to token
// services.
export type {
  Credentials,
  CredentialServices,
  CredentialSettings,
  CredentialType,
  Headers,
  OutgoingRequest,
} from "./credentials.ts";
export { createRenewing, type Lease } from "./renewing.ts";
export {
  askMachine,
  bearerCredentials,
  isSafeAddress,
  machineToken,
  postedToken,
  postForm,
  reportFailure,
  serviceAddress,
  type ServiceAnswer,
} from "./token-service.ts";
