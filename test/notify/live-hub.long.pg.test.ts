/* Sixty random interleavings, instead of eight. */
import './live-hub.pg.test.ts';
