#!/usr/bin/env bash
# Subject: @actions/expressions 0.3.61, GitHub's own package for the expressions of its workflows, Node.js.
# Guess:   it gives what GitHub's runner gives, since both are tested with the same cases.
# Instead: it has JavaScript's numbers, capitals and objects where actions/runner 2.x has .NET's
#          (src/Sdk/DTExpressions2: ExpressionUtility.cs, EvaluationResult.cs, ToJson.cs; DictionaryContextData.cs).
#          Numbers: `0.00001` stays so and `1e15` is 1000000000000000; the runner writes 15 digits, 1E-05 and 1E+15.
#          Texts: 'ß' equals 'SS' and '0b11' equals 3, '0xFFFFFFFF' does not equal -1; in the runner each is the reverse.
#          toJSON: keys such as "20" and "3" come in the order 3, 20, NaN is null; the runner keeps 20, 3 and writes NaN.
#          Of keys that differ by case the first value counts, in the runner the last. Every branch of case() is evaluated.
# Met:     jobs of a matrix ran in another order than on GitHub, and ids in `env` had more digits.
# Needs npm and Node.js 20 or newer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix . @actions/expressions@0.3.61
cat >run.mjs <<'JS'
import { Evaluator, Lexer, Parser, data } from '@actions/expressions';

function resultOf(source) {
  const tree = new Parser(new Lexer(source).lex().tokens, [], []).parse();
  try {
    return new Evaluator(tree, new data.Dictionary()).evaluate().coerceString().replace(/\s+/g, '');
  } catch (error) {
    return `error: ${error.message}`;
  }
}
// Expression, what the package gives, what the runner gives by its source.
const rows = [
  ["format('{0}', 0.00001)", '0.00001', '1E-05'],
  ["format('{0}', 1e15)", '1000000000000000', '1E+15'],
  ["format('{0}', 1234567890123456)", '1234567890123456', '1.23456789012346E+15'],
  ["'ß' == 'SS'", 'true', 'false'],
  ["'0b11' == 3", 'true', 'false'],
  ["'0xFFFFFFFF' == -1", 'false', 'true'],
  ['toJSON(NaN)', 'null', 'NaN'],
  [`toJSON(fromJSON('{"20":1,"3":2}'))`, '{"3":2,"20":1}', '{"20":1,"3":2}'],
  [`toJSON(fromJSON('{"Key":1,"KEY":2}'))`, '{"Key":1}', '{"Key":2}'],
  ["case(true, 1, fromJSON(''))", 'error: empty input', '1'],
];
let changed = 0;
for (const [source, guess, runner] of rows) {
  const result = resultOf(source);
  console.log(`${source.padEnd(40)} package ${result.padEnd(24)} runner ${runner}`);
  if (result !== guess) changed += 1;
}
if (changed > 0) throw new Error(`${changed} results have changed`);
JS
node run.mjs
