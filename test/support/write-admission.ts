import type { WriteAdmission } from '../../src/services/ports.ts';

/** Of a database on which no instance is registered: whoever writes may. */
export const NO_INSTANCES: WriteAdmission = {
  writeId: null,
  isOvertaken: false,
  whenAdmitted: () => Promise.resolve(),
  refused: () => undefined,
};
