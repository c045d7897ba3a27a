/* A kill of an instance that has loaded a large tenant, and a start that warms up nothing. */
import './warm-up.pg.test.ts';
