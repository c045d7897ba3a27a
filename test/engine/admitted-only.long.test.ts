/* More worlds and types of subjects. */
import './admitted-only.test.ts';
