/* More stores and changes. */
import './overlay-reader.test.ts';
