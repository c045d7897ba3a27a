#!/usr/bin/env bash
# Subject: @bufbuild/protobuf 2.17.0 and protobufjs 7.6.6 on Node.js, beside protobuf 6.33.1 on Python: a field whose number has
#          another type on the wire than in the reader's schema, as after a change from int32 to string.
# Guess:   such a field counts as unknown and is set aside, the others are read; so it is in Python.
# Instead: both JavaScript libraries read it by the type of the schema. The number 7 becomes a text of 7 bytes that holds the
#          field behind it, which is then empty, without an error. Other numbers end in an error about the wire type or tag.
# Met:     a scan of request bodies that set such fields aside read another tenant than the message that was built of the same bytes.
# Needs npm, Node.js 20 or newer, Python 3.9 or newer with pip.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix . @bufbuild/protobuf@2.17.0 protobufjs@7.6.6
python3 -m pip install --quiet --disable-pip-version-check --target python protobuf==6.33.1
cat >bodies.json <<'JSON'
[
  ["1 is the number 7", "0807120568656c6c6f1a0178"],
  ["1 is the number 12", "080c120568656c6c6f1a05776f726c64"],
  ["1 has four fixed bytes", "0d01000000120162"],
  ["1 is a text", "0a0161120568656c6c6f1a0178"]
]
JSON
cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { createFileRegistry, fromBinary, fromJson } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import protobufjs from 'protobufjs';

const text = (name, number) => ({ name, number, type: 'TYPE_STRING', label: 'LABEL_OPTIONAL' });
const messageType = [{ name: 'Newer', field: [text('a', 1), text('b', 2), text('c', 3)] }];
const files = fromJson(FileDescriptorSetSchema, {
  file: [{ name: 'newer.proto', syntax: 'proto3', messageType }],
});
const schema = createFileRegistry(files).getMessage('Newer');
const { root } = protobufjs.parse(
  'syntax = "proto3"; message Newer { string a = 1; string b = 2; string c = 3; }',
);
const type = root.lookupType('Newer');
const read = (decode) => {
  try {
    const { a, b, c } = decode();
    return JSON.stringify([a, b, c]);
  } catch {
    return 'error';
  }
};
for (const [name, hex] of JSON.parse(readFileSync('bodies.json', 'utf8'))) {
  const bytes = Uint8Array.from(Buffer.from(hex, 'hex'));
  console.log(`${name}: @bufbuild/protobuf ${read(() => fromBinary(schema, bytes))}`);
  console.log(`${name}: protobufjs ${read(() => type.decode(bytes))}`);
}
JS
cat >run.py <<'PYTHON'
import json
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

file = descriptor_pb2.FileDescriptorProto(name='newer.proto', syntax='proto3')
message = file.message_type.add(name='Newer')
for number, name in enumerate('abc', 1):
    message.field.add(name=name, number=number, type=9, label=1)
pool = descriptor_pool.DescriptorPool()
pool.Add(file)
Newer = message_factory.GetMessageClass(pool.FindMessageTypeByName('Newer'))
for name, body in json.load(open('bodies.json')):
    read = Newer.FromString(bytes.fromhex(body))
    print(f'{name}: python {json.dumps([read.a, read.b, read.c], separators=(",", ":"))}')
PYTHON
seen=$(node run.mjs && PYTHONPATH=python python3 run.py)
echo "$seen"
expected='1 is the number 7: @bufbuild/protobuf ["\u0012\u0005hello","","x"]
1 is the number 7: protobufjs ["\u0012\u0005hello","","x"]
1 is the number 12: @bufbuild/protobuf error
1 is the number 12: protobufjs error
1 has four fixed bytes: @bufbuild/protobuf error
1 has four fixed bytes: protobufjs ["\u0000","b",""]
1 is a text: @bufbuild/protobuf ["a","hello","x"]
1 is a text: protobufjs ["a","hello","x"]
1 is the number 7: python ["","hello","x"]
1 is the number 12: python ["","hello","world"]
1 has four fixed bytes: python ["","b",""]
1 is a text: python ["a","hello","x"]'
if [ "$seen" = "$expected" ]; then echo 'as stated'; else
  echo 'NOT as stated'
  exit 1
fi
