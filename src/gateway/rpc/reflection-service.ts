import { toBinary, type DescFile, type DescService } from '@bufbuild/protobuf';
import { nestedTypes } from '@bufbuild/protobuf/reflect';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Code } from '@connectrpc/connect';
import { ServerReflection as ServerReflectionV1 } from '../../gen/grpc/reflection/v1/reflection_pb.ts';
import type { ServerReflectionRequest } from '../../gen/grpc/reflection/v1/reflection_pb.ts';
import { ServerReflection as ServerReflectionV1Alpha } from '../../gen/grpc/reflection/v1alpha/reflection_pb.ts';
import type { ServerReflectionRequest as RequestV1Alpha } from '../../gen/grpc/reflection/v1alpha/reflection_pb.ts';
import type { ServiceRouter } from '../../http/connect/adapter-options.ts';

/** Queries that one stream may ask; a client needs one a file. */
const QUERIES_MAX = 10_000;

/** Both versions ask and answer alike; only the names of their messages differ. */
type ReflectionQuery = ServerReflectionRequest['messageRequest'] | RequestV1Alpha['messageRequest'];

type ReflectionAnswer =
  | { case: 'fileDescriptorResponse'; value: { fileDescriptorProto: Uint8Array[] } }
  | {
      case: 'allExtensionNumbersResponse';
      value: { baseTypeName: string; extensionNumber: number[] };
    }
  | { case: 'listServicesResponse'; value: { service: { name: string }[] } }
  | { case: 'errorResponse'; value: { errorCode: number; errorMessage: string } };

/**
 * Registers grpc.reflection.v1 and v1alpha for `services` and themselves, so that grpcurl and its
 * like work without the proto files. Files are those of the services and all that they import.
 */
export function reflectionRoutes(router: ServiceRouter, services: readonly DescService[]): void {
  const index = indexOf([...services, ServerReflectionV1, ServerReflectionV1Alpha]);
  router.service(ServerReflectionV1, {
    async *serverReflectionInfo(requests) {
      let count = 0;
      for await (const request of requests) {
        const messageResponse =
          (count += 1) > QUERIES_MAX ? tooMany() : index(request.messageRequest);
        yield { validHost: request.host, originalRequest: request, messageResponse };
      }
    },
  });
  router.service(ServerReflectionV1Alpha, {
    async *serverReflectionInfo(requests) {
      let count = 0;
      for await (const request of requests) {
        const messageResponse =
          (count += 1) > QUERIES_MAX ? tooMany() : index(request.messageRequest);
        yield { validHost: request.host, originalRequest: request, messageResponse };
      }
    },
  });
}

function indexOf(
  services: readonly DescService[],
): (question: ReflectionQuery) => ReflectionAnswer {
  const files = new Map<string, DescFile>();
  const fileOfSymbol = new Map<string, DescFile>();
  for (const service of services) addFile(service.file, files, fileOfSymbol);
  const listed = services.map((service) => ({ name: service.typeName }));
  return (question) => {
    switch (question.case) {
      case 'listServices':
        return { case: 'listServicesResponse', value: { service: listed } };
      case 'fileByFilename':
        return filesAnswer(files.get(question.value.replace(/\.proto$/, '')), question.value);
      case 'fileContainingSymbol':
        return filesAnswer(fileOfSymbol.get(question.value), question.value);
      case 'fileContainingExtension':
        return notFound(question.value.containingType);
      case 'allExtensionNumbersOfType': {
        if (!fileOfSymbol.has(question.value)) return notFound(question.value);
        const value = { baseTypeName: question.value, extensionNumber: [] };
        return { case: 'allExtensionNumbersResponse', value };
      }
      default:
        return refused(Code.InvalidArgument, 'the request asks for nothing');
    }
  };
}

function addFile(
  file: DescFile,
  files: Map<string, DescFile>,
  fileOfSymbol: Map<string, DescFile>,
): void {
  if (files.has(file.name)) return;
  files.set(file.name, file);
  for (const type of nestedTypes(file)) {
    fileOfSymbol.set(type.typeName, file);
    if (type.kind !== 'service') continue;
    for (const method of type.methods) fileOfSymbol.set(`${type.typeName}.${method.name}`, file);
  }
  for (const dependency of file.dependencies) addFile(dependency, files, fileOfSymbol);
}

/** The file first, then all that it imports, each once. */
function filesAnswer(file: DescFile | undefined, asked: string): ReflectionAnswer {
  if (file === undefined) return notFound(asked);
  const closure = new Set<DescFile>();
  const visit = (next: DescFile): void => {
    if (closure.has(next)) return;
    closure.add(next);
    for (const dependency of next.dependencies) visit(dependency);
  };
  visit(file);
  const encoded = [...closure].map((one) => toBinary(FileDescriptorProtoSchema, one.proto));
  return { case: 'fileDescriptorResponse', value: { fileDescriptorProto: encoded } };
}

function notFound(asked: string): ReflectionAnswer {
  return refused(Code.NotFound, `${asked.slice(0, 200)}: not found`);
}

function tooMany(): ReflectionAnswer {
  return refused(Code.ResourceExhausted, `more than ${QUERIES_MAX} questions on one stream`);
}

function refused(code: Code, errorMessage: string): ReflectionAnswer {
  return { case: 'errorResponse', value: { errorCode: code, errorMessage } };
}
