/* Three processes, nine writers that never pause, and 24 rounds instead of three. */
import './typed-models.host.test.ts';
