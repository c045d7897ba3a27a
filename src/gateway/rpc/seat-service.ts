import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { assertNoUnknownFields } from '../../decoding/unknown-fields.ts';
import {
  ListSeatsResponseSchema,
  type SeatService,
} from '../../gen/workspace/v1/seat_service_pb.ts';
import { timestampFromMicroseconds } from '../../requests/tuple-to-proto.ts';
import type { WriteMeta } from '../../services/ports.ts';
import type { SeatService as Seats } from '../../services/seats/seat-service.ts';
import { type CallDefaults, deadlineOf } from '../connect/call-context.ts';
import { pagedAnswer } from './list-answer.ts';
import { writeMetaOf } from './write-meta.ts';

export type SeatHandlersOptions = CallDefaults & { readonly seats: Seats };

/** The handlers of SeatService. */
export function createSeatService(options: SeatHandlersOptions): ServiceImpl<typeof SeatService> {
  const { seats } = options;
  const metaOf = (context: HandlerContext): WriteMeta =>
    writeMetaOf(context, deadlineOf(context, options));
  return {
    async setSeatLimit(request, context) {
      assertNoUnknownFields(request);
      const limit = await seats.setLimit(request, metaOf(context));
      return { limit: { sku: request.sku, ...(limit === undefined ? {} : { limit }) } };
    },

    async getSeatUsage(request) {
      assertNoUnknownFields(request);
      const { sku, used, limit } = await seats.usage(request);
      return { sku, used, limit: limit ?? 0, limited: limit !== undefined };
    },

    async assignSeat(request, context) {
      assertNoUnknownFields(request);
      return { alreadyHeld: await seats.assign(request, metaOf(context)) };
    },

    async revokeSeat(request, context) {
      assertNoUnknownFields(request);
      await seats.revoke(request, metaOf(context));
      return {};
    },

    async listSeats(request, context) {
      assertNoUnknownFields(request);
      return await pagedAnswer(context, ListSeatsResponseSchema, seats.list(request), (some) => ({
        seats: some.map(({ sku, userId, assignedAtUs }) => ({
          sku,
          userId,
          assignedAt: timestampFromMicroseconds(assignedAtUs),
        })),
      }));
    },
  };
}
