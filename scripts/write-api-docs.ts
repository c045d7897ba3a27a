/** Writes docs/api.md, which is not kept, from the protos and their comments; with --check only makes sure that it can be written. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import {
  type AnyDesc,
  createFileRegistry,
  type DescEnum,
  type DescField,
  type DescFile,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  ScalarType,
} from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { getComments } from '@bufbuild/protoplugin';

const PATH = 'docs/api.md';
/** Packages with a chapter, in this order, and what stands at its beginning. */
const CHAPTERS: readonly (readonly [string, string])[] = [
  ['workspace.v1', 'The contract: decisions, tuples, workspaces, groups, seats, projects.'],
  [
    'gatehouse.v1',
    'What goes beyond it: models, queries, tuples in bulk. The same port and credentials.',
  ],
  ['notify.v1', 'The notification service, on a port of its own.'],
];

const INTRO = `# API

Generated from \`proto/\` by \`npm run docs:api\`; edit the comments there.

Every method is a \`POST\` to \`/package.Service/Method\` with JSON (\`content-type: application/json\`, fields under the names
below) or protobuf (\`application/proto\`), by the [Connect](https://connectrpc.com/docs/protocol) protocol; the same port speaks gRPC and
gRPC-Web. Methods with a *stream* take the streaming forms of the three. JSON has an \`int64\` as text, a \`Timestamp\` as RFC 3339, an enum by its name. An absent
field has its empty value; an unknown one is refused. Errors carry a code, a message, and in their details a stable
\`reason\`, with the field where there is one.
`;

function descriptors(): readonly DescFile[] {
  const bytes = execFileSync('buf', ['build', '-o', '-'], { maxBuffer: 64 * 1024 * 1024 });
  return [...createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes)).files];
}

function commentOf(desc: Exclude<AnyDesc, DescFile>): string {
  const { leading = '', trailing = '' } = getComments(desc);
  return `${leading}${trailing}`.replaceAll(/\s+/g, ' ').trim();
}

const anchorOf = (name: string): string => name.toLowerCase().replaceAll('.', '');
const link = (desc: DescMessage | DescEnum): string =>
  desc.typeName.startsWith('google.')
    ? `\`${desc.name}\``
    : `[${nameOf(desc)}](#${anchorOf(desc.typeName)})`;

/** Within its package: an inner one with its outer one's name. */
function nameOf(desc: DescMessage | DescEnum): string {
  return desc.typeName.slice(desc.file.proto.package.length + 1);
}

function scalarOf(scalar: ScalarType): string {
  return `\`${(ScalarType[scalar] ?? '').toLowerCase()}\``;
}

function typeOf(field: DescField): string {
  switch (field.fieldKind) {
    case 'scalar':
      return scalarOf(field.scalar);
    case 'enum':
      return link(field.enum);
    case 'message':
      return link(field.message);
    case 'list': {
      const inner =
        field.listKind === 'scalar'
          ? scalarOf(field.scalar)
          : link(field.listKind === 'enum' ? field.enum : field.message);
      return `list of ${inner}`;
    }
    case 'map': {
      const inner =
        field.mapKind === 'scalar'
          ? scalarOf(field.scalar)
          : link(field.mapKind === 'enum' ? field.enum : field.message);
      return `map of ${scalarOf(field.mapKey)} to ${inner}`;
    }
  }
}

const cell = (text: string): string => text.replaceAll('|', '\\|');

function messageText(message: DescMessage): string {
  const rows = message.fields.map((field) => {
    const choice = field.oneof === undefined ? '' : ` *(one of \`${field.oneof.name}\`)*`;
    return `| \`${field.name}\` | ${typeOf(field)}${choice} | ${cell(commentOf(field))} |`;
  });
  const table =
    rows.length === 0 ? 'No fields.' : ['| field | type | |', '|---|---|---|', ...rows].join('\n');
  return `#### ${message.typeName}\n\n${commentOf(message)}\n\n${table}\n`;
}

function enumText(desc: DescEnum): string {
  const rows = desc.values.map((value) => `| \`${value.name}\` | ${cell(commentOf(value))} |`);
  return `#### ${desc.typeName}\n\n${commentOf(desc)}\n\n| value | |\n|---|---|\n${rows.join('\n')}\n`;
}

function methodText(service: DescService, method: DescMethod): string {
  const streams = {
    unary: ['', ''],
    server_streaming: ['', 'a stream of '],
    client_streaming: ['a stream of ', ''],
    bidi_streaming: ['a stream of ', 'a stream of '],
  }[method.methodKind];
  const [input = '', output = ''] = streams;
  return `| \`/${service.typeName}/${method.name}\` | ${input}${link(method.input)} | ${output}${link(method.output)} | ${cell(commentOf(method))} |`;
}

function serviceText(service: DescService): string {
  const rows = service.methods.map((method) => methodText(service, method));
  return `### ${service.name}\n\n${commentOf(service)}\n\n| path | takes | gives | |\n|---|---|---|---|\n${rows.join('\n')}\n`;
}

function nested(message: DescMessage): readonly (DescMessage | DescEnum)[] {
  return [message, ...message.nestedEnums, ...message.nestedMessages.flatMap(nested)];
}

function chapterText(files: readonly DescFile[], name: string, intro: string): string {
  const own = files
    .filter((file) => file.proto.package === name)
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  if (own.length === 0) throw new Error(`there is no package ${name}`);
  const parts = own.flatMap((file) => [
    ...file.services.map(serviceText),
    ...[...file.messages.flatMap(nested), ...file.enums].map((desc) =>
      desc.kind === 'message' ? messageText(desc) : enumText(desc),
    ),
  ]);
  return `## ${name}\n\n${intro}\n\n${parts.join('\n')}`;
}

const files = descriptors();
const text = [INTRO, ...CHAPTERS.map(([name, intro]) => chapterText(files, name, intro))].join(
  '\n',
);
if (!process.argv.includes('--check')) {
  writeFileSync(PATH, text);
  console.info(`wrote ${PATH}`);
}
