/* Two hundred random models for each method, instead of twenty-five. */
import './model-fuzz.pg.test.ts';
