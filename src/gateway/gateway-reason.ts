/** Why calls are not served: not yet, no longer, or not under the name that they are addressed to. */
export type GatewayReason = 'STORE_UNAVAILABLE' | 'SHUTTING_DOWN' | 'HOST_NOT_ALLOWED'; // Host or :authority names another service
