import type {
  Metadata,
  status as Status,
  ServerInterceptingCall as Call,
  ServerInterceptor,
  ServerListenerBuilder as Listeners,
} from '@grpc/grpc-js';
import { type GuardOptions, type Verdict, verdictOn } from './verdict.ts';

/** What a call says before its first message. */
export type GrpcCall = { readonly path: string; readonly metadata: Metadata };

/** What is needed of the package @grpc/grpc-js, given by the caller: this package does not need it. */
export type Grpc = {
  readonly ServerInterceptingCall: typeof Call;
  readonly ServerListenerBuilder: typeof Listeners;
  readonly status: typeof Status;
};

const CODES = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
} as const satisfies Record<Exclude<Verdict['status'], 200>, keyof typeof Status>;

/** An interceptor of a @grpc/grpc-js server: a call goes on where its user holds what `needs` says of it. */
export function gatehouse(
  options: GuardOptions<GrpcCall> & { readonly grpc: Grpc },
): ServerInterceptor {
  const { ServerInterceptingCall, ServerListenerBuilder, status } = options.grpc;
  return (descriptor, nextCall) => {
    const call = new ServerInterceptingCall(nextCall, {
      start: (next) => {
        const listener = new ServerListenerBuilder().withOnReceiveMetadata((metadata, proceed) => {
          void verdictOn(options, { path: descriptor.path, metadata }).then((verdict) => {
            if (verdict.status === 200) return proceed(metadata);
            const code = status[CODES[verdict.status]];
            call.sendStatus({ code, details: verdict.message });
          });
        });
        next(listener.build());
      },
    });
    return call;
  };
}
