/* Every hostile value of every field, instead of a ninth of them. */
import './bad-input.pg.test.ts';
