/* Four times as many random files and expressions. */
import './random-files.test.ts';
