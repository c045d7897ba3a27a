/** The operator's settings; never on a wire. */
export type ConfigReason = 'CONFIG_INVALID';
