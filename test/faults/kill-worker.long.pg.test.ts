/* More kills, under a greater load. */
import './kill-worker.pg.test.ts';
