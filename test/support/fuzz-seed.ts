/** Loaded before each test file: properties that name no seed of their own begin with SEED, where it is set. */
import fc from 'fast-check';

const seed = process.env['SEED'];
if (seed !== undefined) fc.configureGlobal({ seed: Number(seed) });
