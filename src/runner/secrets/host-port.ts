/** Base64 of 32 bytes (X25519), and the id under which the host knows it. */
export type HostPublicKey = { readonly keyId: string; readonly key: string };

/**
 * The secrets of the repository on its code host, which takes them sealed and never gives them back
 * (docs.github.com/rest/actions/secrets). `environment` is `default` for those of the repository itself.
 * Errors of all methods: BACKEND_UNAVAILABLE, UPSTREAM_ERROR, REMOTE_MISSING.
 */
export interface HostSecretPort {
  /** Why the host cannot be used (no repository configured, no token), undefined when it can. Sends nothing. */
  problem(): string | undefined;
  publicKey(environment: string): Promise<HostPublicKey>;
  /** Whether it was made or replaced. */
  putSecret(
    environment: string,
    name: string,
    sealed: { readonly keyId: string; readonly encryptedValue: string },
  ): Promise<'created' | 'updated'>;
  /** False when the host has none of this name. */
  removeSecret(environment: string, name: string): Promise<boolean>;
  /** Names and times of one environment; empty for an environment that the host does not know. */
  listSecrets(
    environment: string,
  ): Promise<readonly { readonly name: string; readonly updatedAt: string }[]>;
}
