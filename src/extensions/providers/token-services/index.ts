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
export { createLeaseCache, type Lease } from "./lease-cache.ts";
export {
  callLocal,
  bearerCredentials,
  isSafeAddress,
  localToken,
  remoteToken,
  postForm,
  reportFailure,
  serviceAddress,
  type ServiceAnswer,
} from "./token-service.ts";
