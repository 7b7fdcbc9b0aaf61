// What all types of credentials are made of: the contract, values that expire, and the calls to
// services that hand out tokens.
export { bearerCredentials } from "./bearer.ts";
export type {
  Credentials,
  CredentialServices,
  CredentialType,
  Headers,
  OutgoingRequest,
} from "./credentials.ts";
export { createRenewing, type Lease } from "./renewing.ts";
export {
  askMachine,
  isSafeAddress,
  machineTokenOf,
  postForm,
  reportFailure,
  serviceAddress,
  tokenIn,
  type ServiceAnswer,
} from "./token-service.ts";
