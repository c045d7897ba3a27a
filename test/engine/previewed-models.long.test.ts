/* More worlds and models. */
import './previewed-models.test.ts';
