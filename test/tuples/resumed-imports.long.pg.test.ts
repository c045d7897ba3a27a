/* Twelve streams that are cut at random, instead of three, and imports beside writers. */
import './resumed-imports.pg.test.ts';
