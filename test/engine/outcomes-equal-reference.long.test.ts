/* More worlds. */
import './outcomes-equal-reference.test.ts';
