/* Twenty-four rounds, instead of six. */
import './typed-models.host.test.ts';
