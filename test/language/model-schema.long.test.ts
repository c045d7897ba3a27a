/* Four times as many random models. */
import './model-schema.test.ts';
