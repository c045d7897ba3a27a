#!/usr/bin/env bash
# Subject: @bufbuild/protobuf 2.17.0 (fromJson of google.protobuf.Timestamp) and @bufbuild/cel 0.6.1 (timestamp()), Node.js.
# Guess:   a time whose day does not exist (2027-02-30) is an error; small t and z are taken, as RFC 3339 section 5.6 allows.
# Instead: fromJson takes days 29 to 31 of every month, and hour 24, and moves them: 2027-02-30 is 2 March, 24:00 the next
#          day. It refuses day 32, month 13 and hour 25, and also small t and z. CEL's timestamp() does
#          the same.
# Met:     a grant that was to expire on 30 February lived for two days more.
# Needs npm and Node.js 20 or newer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix . @bufbuild/protobuf@2.17.0 @bufbuild/cel@0.6.1
cat >run.mjs <<'JS'
import { fromJson, toJson } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { parse, plan, celEnv } from '@bufbuild/cel';

function byProtobuf(text) {
  try {
    return toJson(TimestampSchema, fromJson(TimestampSchema, text));
  } catch {
    return 'refused';
  }
}
function byCel(text) {
  try {
    const value = plan(celEnv(), parse(`timestamp("${text}")`))({});
    return value instanceof Error || value?.message?.seconds === undefined
      ? 'refused'
      : new Date(Number(value.message.seconds) * 1000).toISOString().replace('.000', '');
  } catch {
    return 'refused';
  }
}

const expected = [
  ['2027-02-28T00:00:00Z', '2027-02-28T00:00:00Z', '2027-02-28T00:00:00Z'],
  ['2027-02-29T00:00:00Z', '2027-03-01T00:00:00Z', '2027-03-01T00:00:00Z'],
  ['2027-02-30T00:00:00Z', '2027-03-02T00:00:00Z', '2027-03-02T00:00:00Z'],
  ['2027-04-31T12:00:00Z', '2027-05-01T12:00:00Z', '2027-05-01T12:00:00Z'],
  ['2027-01-01T24:00:00Z', '2027-01-02T00:00:00Z', '2027-01-02T00:00:00Z'],
  ['2027-01-32T00:00:00Z', 'refused', 'refused'],
  ['2027-13-01T00:00:00Z', 'refused', 'refused'],
  ['2027-01-01T25:00:00Z', 'refused', 'refused'],
  ['2027-01-01t00:00:00z', 'refused', 'refused'],
];
let asStated = true;
for (const [text, protobuf, cel] of expected) {
  const seen = [byProtobuf(text), byCel(text)];
  console.log(`${text}: protobuf ${seen[0]}, cel ${seen[1]}`);
  asStated &&= seen[0] === protobuf && seen[1] === cel;
}
console.log(asStated ? 'as stated' : 'NOT as stated');
process.exit(asStated ? 0 : 1);
JS
node run.mjs
