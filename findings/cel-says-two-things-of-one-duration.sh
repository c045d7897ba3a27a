#!/usr/bin/env bash
# Subject: github.com/google/cel-go 0.31.0 (which OpenFGA 1.22.1 evaluates conditions with) beside @bufbuild/cel 0.6.1.
# Guess:   CEL is specified and has a suite of cases, so that one expression of its standard functions is one value anywhere.
# Instead: getMilliseconds() of 1m30.5s is 90500 in Go and 500 in JavaScript, as in the suite; int() of a duration is in nanoseconds
#          and in seconds; string() of 1000000.0 is 1e+06 and 1000000; a time keeps its offset in Go and becomes UTC in JavaScript.
#          getHours() of that time is the hour in UTC in both.
# Met:     a policy that is moved from one evaluator to another compiles, and decides otherwise without a word.
# Needs Go 1.24 or newer, npm and Node.js 20 or newer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >expressions.json <<'JSON'
[
 "duration('1m30.5s').getMilliseconds()",
 "duration('1m30.5s').getSeconds()",
 "int(duration('1.5s'))",
 "string(duration('1.5s'))",
 "string(1000000.0)",
 "string(0.00001)",
 "string(-0.0)",
 "string(timestamp('2026-01-01T00:00:00.100Z'))",
 "string(timestamp('2026-01-01T00:00:00+02:00'))",
 "timestamp('2026-01-01T00:00:00+02:00').getHours()"
]
JSON
npm install --silent --no-audit --no-fund --prefix . @bufbuild/cel@0.6.1 @bufbuild/cel-spec@0.6.1 @bufbuild/protobuf@2.17.0
cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { celEnv, parse, plan } from '@bufbuild/cel';
const env = celEnv();
for (const source of JSON.parse(readFileSync('expressions.json', 'utf8'))) console.log(String(plan(env, parse(source))({})));
JS
cat >go.mod <<'MOD'
module run

go 1.24
MOD
cat >main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/google/cel-go/cel"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	var sources []string
	if err := json.Unmarshal(must(os.ReadFile("expressions.json")), &sources); err != nil {
		panic(err)
	}
	env := must(cel.NewEnv())
	for _, source := range sources {
		ast, issues := env.Compile(source)
		if issues.Err() != nil {
			panic(issues.Err())
		}
		value, _, err := must(env.Program(ast)).Eval(map[string]any{})
		fmt.Println(must(value, err).Value())
	}
}
GO
export GOFLAGS=-mod=mod
go get github.com/google/cel-go@v0.31.0 >/dev/null 2>&1
go run . >in-go
TZ=UTC node run.mjs >in-javascript
node -p "JSON.parse(require('fs').readFileSync('expressions.json', 'utf8')).join('\n')" >asked
paste -d '|' asked in-go in-javascript | tee found
cat >wanted <<'TEXT'
duration('1m30.5s').getMilliseconds()|90500|500
duration('1m30.5s').getSeconds()|90|90
int(duration('1.5s'))|1500000000|1
string(duration('1.5s'))|1.5s|1.500s
string(1000000.0)|1e+06|1000000
string(0.00001)|1e-05|0.00001
string(-0.0)|-0|0
string(timestamp('2026-01-01T00:00:00.100Z'))|2026-01-01T00:00:00.1Z|2026-01-01T00:00:00.100Z
string(timestamp('2026-01-01T00:00:00+02:00'))|2026-01-01T00:00:00+02:00|2025-12-31T22:00:00Z
timestamp('2026-01-01T00:00:00+02:00').getHours()|22|22
TEXT
diff wanted found
