/* 25 random sequences of operations, not 8; 10 races, not 4. */
import './operations.pg.test.ts';
