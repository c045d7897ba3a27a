/* A model of twice as many namespaces: the size of the largest request. */
import './model-exclusions.test.ts';
