/** Why calls are not served yet, or no longer. */
export type GatewayReason = 'STORE_UNAVAILABLE' | 'SHUTTING_DOWN';
