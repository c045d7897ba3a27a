/* 20 random worlds, not 8. */
import './contextual-equals-written.pg.test.ts';
