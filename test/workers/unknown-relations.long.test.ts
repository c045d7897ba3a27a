/* Twelve random models and questions, instead of four. */
import './unknown-relations.test.ts';
