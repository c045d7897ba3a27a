/* 40 changes of the model, in a service of its own process. */
import './model-change.pg.test.ts';
