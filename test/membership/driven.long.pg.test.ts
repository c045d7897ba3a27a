/* Forty random walks through the states of the model, instead of six. */
import './driven.pg.test.ts';
